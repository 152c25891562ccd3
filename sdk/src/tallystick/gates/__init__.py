"""The gates that every call passes, in order: contract, arguments, permission, policy, service.

Pure: each decides over values, and whoever runs the call brings what the world said. The runtime
(`tallystick.runtime`) and the service hold a call to the same decisions.
"""
