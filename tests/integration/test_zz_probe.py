import time, asyncio, pytest, json
import httpx
from tests.api import Api
from tests.builders import a_contract

async def test_probe(api: Api):
    api.http._transport.raise_app_exceptions = False
    t=time.perf_counter()
    ref = await api.publish(a_contract())
    for i in range(20):
        await api.plan(ref, effect=f"e{i}", dispatch=api.asking())
    print("20 plans", time.perf_counter()-t)
    for method, path, body in [
        ("GET","/v1/contracts?name=%00",None),
        ("GET","/v1/contracts/a%00b/1.0",None),
        ("GET","/v1/effects?run=%00",None),
        ("GET","/v1/effects?tool=%00",None),
        ("GET","/v1/effects?after=%00",None),
        ("GET","/v1/effects/%00",None),
        ("GET","/v1/grants?principal=%00",None),
        ("DELETE","/v1/grants?principal=%00&capability=a",None),
        ("POST","/v1/credentials/%00/rotate",{}),
        ("POST","/v1/rollouts/%00/1.0/retire",{}),
        ("POST","/v1/contracts/%00/1.0/attest",{}),
        ("DELETE","/v1/pins/x",None),
        ("DELETE","/v1/pins/%00",None),
        ("PUT","/v1/workers/%00/heartbeat",{}),
        ("POST","/v1/grants",{"principal":"a","capability":"a:b:"+"".join(__import__("secrets").token_hex(4000))}),
        ("POST","/v1/pins",{"name":"billing.send_invoice","version":"2.1","holder":"h","ttl_seconds":1e-320}),
        ("POST","/v1/credentials",{"name":"1abc"}),
        ("POST","/v1/credentials",{"name":"abc\n"}),
        ("GET","/v1/contracts/"+"a"*100000+"/1.0",None),
        ("GET","/v1/effects?limit=999999999999999999999999",None),
        ("GET","/v1/effects/"+"a"*100000,None),
        ("GET","/v1/effects/"+"9"*5000,None),
        ("GET","/v1/effects/01890000-0000-7000-8000-000000000000."+"9"*5000,None),
        ("GET","/v1/effects/01890000-0000-7000-8000-000000000000.1",None),
        ("GET","/v1/effects/00000000-0000-0000-0000-000000000000.1",None),
        ("PATCH","/v1/effects",None),
        ("GET","/v1/nothing",None),
        ("GET","/v1/contracts/",None),
    ]:
        r = await api.http.request(method, path, json=body)
        print(r.status_code, method, path[:60], r.text[:300])
    for content, ct in [(b"", None),(b"", "application/json"),(b"not json","application/json"),(b'{"run":1,"run":2}',"application/json"),
       (b'{"arguments":{"a":NaN}}',"application/json"),(b'{"arguments":{"a":1,"a":2}}',"application/json"),(b'{"argumentsx":{"a":1,"a":2}}',"application/json"),(b'{}',"text/plain"),(b'{}',None),(b'[]',"application/json"),(b'null',"application/json"),(b'1',"application/json"),(b'"\xff"',"application/json"),
       (b'['*100000,"application/json"), (b'{"run":"' + b'a'*3000000+b'"}',"application/json"), (b'{"a":"\\ud800"}',"application/json"), (b'a=b', "application/x-www-form-urlencoded"),
       (b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--', "multipart/form-data; boundary=x"), (b'{}', "application/json; charset=utf-16"), (b'{}', "application/vnd.x+json"),(b'\xef\xbb\xbf{}', "application/json"),
       ]:
        h = {"content-type": ct} if ct else {}
        r = await api.http.request("POST", "/v1/effects", content=content, headers=h)
        print(r.status_code, content[:40], ct, r.text[:300])
