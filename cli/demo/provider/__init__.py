"""The reference provider: a small billing service with books of its own, that fails on demand.

    python -m cli.demo.provider --port 8701 --books books.sqlite

It is the judge of what really happened: for the demo, for tests, and for whoever writes a contract.

    POST /invoices                    books once for an `Idempotency-Key`, which has to be sent
    POST /transfers, /messages, /notes    book every request
    GET  /keys/{idempotency_key}      what was made under a key, or 404
    POST /keys/{idempotency_key}/cancel    cancels what is pending, and what may still come
    GET  /effects/{effect_id}         what was made under an `Effect-Id`, or 404
    GET  /bookings/{reference}        what has this name of the provider's own, or 404
    GET  /bookings?after=&limit=      all of it, oldest first, for a reverse sweep
    GET  /customers/{customer_id}     changes nothing
    GET  /books                       for the judge: each booking, request and webhook, never late
    GET, PUT /plan                    what goes wrong from now on: see `faults.Plan`

A key is answered as the IETF's draft-ietf-httpapi-idempotency-key-header has it: 400 without one,
409 while its first request is under way, 422 for another body; after the retention, or if another
key is sent, it is another booking. A booking is `pending`, `booked`, `declined` or `cancelled`; its
webhooks are signed as https://www.standardwebhooks.com says. `Effect-Id` and `Fence` are headers
for the judge: they are kept with the request. A request can bring its own fault in a header
`Fault: answers_late=1.5`.
"""
