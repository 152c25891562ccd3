"""Where evidence is asked: at the very address that was judged, under the name that was allowed."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ledger.evidence import Answer
from ledger.judgement import Judgement
from reconciler.addresses import Hosts
from reconciler.sources import Asker, HttpSource
from tallystick.tool_contract import Contract
from tests.builders import a_contract, a_question, http_evidence
from tests.provider import Provider, listening

NAME = "billing.example"
EFFECT = "019ad000-0000-7000-8000-000000000000.7"
ASKER = Asker("default", is_publisher=True)
NOT_ASKED = "the host has an address that may not be asked"


class Names:
    """A resolver of our own: what each look-up in turn is told."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        return self.answers.pop(0)


def contract_at(url: str, **http: object) -> Contract:
    evidence = http_evidence(1)
    evidence["http"] |= {"url": url, **http}
    del evidence["answer"]["match"]
    return Contract.parse(a_contract(evidence=evidence))


async def ask(
    names: Names, contract: Contract, hosts: Hosts, verify: ssl.SSLContext | bool = True
) -> Judgement:
    async with httpx.AsyncClient(trust_env=False, verify=verify) as client:
        source = HttpSource(client, hosts, lambda *_: "s3cret", names)
        return await judged(source, contract)


async def judged(source: HttpSource, contract: Contract) -> Judgement:
    judgement = await source.ask(contract, a_question(EFFECT), ASKER)
    assert judgement is not None, "the contract says how to ask"
    return judgement


def at(port: int) -> tuple[Contract, str]:
    return contract_at(f"http://{NAME}:{port}/effects/{{effect_id}}"), f"{NAME}:{port}"


async def test_a_name_server_that_hangs_is_asked_once_at_a_time():
    """A look-up holds a thread: the names of other providers need some too."""
    _, place = at(1)
    contract = contract_at(f"http://{place}/effects/{{effect_id}}", timeout_seconds=0.05)
    is_up, asked = asyncio.Event(), 0

    async def resolve(host: str, port: int) -> list[str]:
        nonlocal asked
        asked += 1
        await is_up.wait()
        return []

    async with httpx.AsyncClient(trust_env=False) as client:
        source = HttpSource(client, Hosts(frozenset({place})), lambda *_: None, resolve)
        for _ in range(2):
            told = await asyncio.gather(judged(source, contract), judged(source, contract))
            assert {one.detail for one in told} == {"not reached: TimeoutError"}
        assert asked == 1
        is_up.set()
        while (await judged(source, contract)).detail != NOT_ASKED:
            pass


async def test_a_name_is_resolved_once_and_asked_at_that_address(provider: Provider):
    """DNS rebinding: the second answer of the name server is never asked for."""
    provider.book(EFFECT)
    contract, place = at(provider.port)
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    judgement = await ask(names, contract, Hosts(private=frozenset({place})))
    assert (judgement.answer, names.asked) == (Answer.APPLIED, [(NAME, provider.port)])
    assert provider.heads[0]["host"] == place


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["10.0.0.1"],
        ["100.64.0.1"],
        ["169.254.169.254"],
        ["0.0.0.0"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        [],
    ],
)
async def test_a_public_name_that_leads_inside_is_not_asked(
    provider: Provider, addresses: list[str]
):
    contract, place = at(provider.port)
    judgement = await ask(Names(addresses), contract, Hosts(public=frozenset({place})))
    assert judgement == Judgement(Answer.UNAVAILABLE, NOT_ASKED)
    assert provider.asked == []


async def test_a_private_name_does_not_lead_to_a_clouds_credentials(provider: Provider):
    contract, place = at(provider.port)
    names = Names(["169.254.169.254", "127.0.0.1"])
    judgement = await ask(names, contract, Hosts(private=frozenset({place})))
    assert (judgement.detail, provider.asked) == (NOT_ASKED, [])


async def test_a_name_in_no_list_is_not_even_resolved(provider: Provider):
    contract, _ = at(provider.port)
    names = Names(["8.8.8.8"])
    judgement = await ask(names, contract, Hosts())
    assert (judgement.answer, names.asked, provider.asked) == (Answer.UNAVAILABLE, [], [])


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "localhost", "[::1]"])
async def test_no_spelling_of_loopback_is_public(provider: Provider, host: str):
    url = f"http://{host}:{provider.port}/effects/{{effect_id}}"
    place = f"{host.strip('[]')}:{provider.port}"
    async with httpx.AsyncClient(trust_env=False) as client:
        source = HttpSource(client, Hosts(public=frozenset({place})), lambda *_: None)
        judgement = await judged(source, contract_at(url))
    assert (judgement.detail, provider.asked) == (NOT_ASKED, [])


async def test_the_next_address_is_tried_where_one_takes_no_connection(provider: Provider):
    provider.book(EFFECT)
    contract, place = at(provider.port)
    names = Names(["127.0.0.2", "127.0.0.1"])
    judgement = await ask(names, contract, Hosts(private=frozenset({place})))
    assert judgement.answer == Answer.APPLIED


async def test_a_contract_cannot_speak_for_another_host(provider: Provider):
    provider.book(EFFECT)
    url = f"http://{NAME}:{provider.port}/effects/{{effect_id}}"
    contract = contract_at(url, headers={"hOsT": "metadata.internal", "connection": "keep-alive"})
    place = f"{NAME}:{provider.port}"
    await ask(Names(["127.0.0.1"]), contract, Hosts(private=frozenset({place})))
    assert provider.heads[0]["host"] == place
    assert provider.heads[0]["connection"] == "close"


async def test_what_is_compressed_is_not_unpacked(provider: Provider):
    provider.raw = b"\x1f\x8b\x08\x00"
    provider.headers = b"Content-Encoding: gzip\r\n"
    contract, place = at(provider.port)
    judgement = await ask(Names(["127.0.0.1"]), contract, Hosts(private=frozenset({place})))
    assert judgement.answer == Answer.UNAVAILABLE
    assert judgement.detail.startswith("the answer is not JSON")
    assert provider.heads[0]["accept-encoding"] == "identity"


async def test_a_secret_goes_nowhere_in_clear_text():
    """Nobody on the way reads it, unless an operator says that the host is a neighbour."""
    place = f"{NAME}:80"
    names = Names(["8.8.8.8"])
    contract = contract_at(f"http://{NAME}/effects/{{effect_id}}", secret="billing-api")
    judgement = await ask(names, contract, Hosts(public=frozenset({place})))
    assert judgement.answer == Answer.UNAVAILABLE
    assert "https" in judgement.detail
    assert names.asked == []


# --- TLS ------------------------------------------------------------------------------------------


def certificate_for(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a server that has a certificate for a name, and of who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = folder / "certificate.pem"
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.create_default_context(cafile=str(file))
    return server, client


@asynccontextmanager
async def secured(name: str, folder: Path) -> AsyncGenerator[tuple[Provider, ssl.SSLContext]]:
    server, client = certificate_for(name, folder)
    async with listening(tls=server) as provider:
        yield provider, client


@pytest.mark.parametrize(("holder", "is_reached"), [(NAME, True), ("other.example", False)])
async def test_the_certificate_must_be_for_the_name(holder: str, is_reached: bool, tmp_path: Path):
    async with secured(holder, tmp_path) as (provider, client):
        provider.book(EFFECT)
        contract = contract_at(f"https://{NAME}:{provider.port}/effects/{{effect_id}}")
        hosts = Hosts(private=frozenset({f"{NAME}:{provider.port}"}))
        judgement = await ask(Names(["127.0.0.1"]), contract, hosts, client)
    if is_reached:
        assert (judgement.answer, len(provider.asked)) == (Answer.APPLIED, 1)
    else:
        assert judgement == Judgement(Answer.UNAVAILABLE, "not reached: ConnectError")
        assert provider.asked == []


async def test_a_connection_to_one_name_is_not_used_for_another(tmp_path: Path):
    """Two names of one address: each connection is verified for the name that it is for."""
    async with secured(NAME, tmp_path) as (provider, verify):
        provider.book(EFFECT)
        places = {f"{name}:{provider.port}" for name in (NAME, "other.example")}
        async with httpx.AsyncClient(trust_env=False, verify=verify) as client:
            names = Names(["127.0.0.1"], ["127.0.0.1"])
            source = HttpSource(client, Hosts(private=frozenset(places)), lambda *_: None, names)
            answers = [
                (await judged(source, contract_at(url))).answer
                for url in (
                    f"https://{name}:{provider.port}/effects/{{effect_id}}"
                    for name in (NAME, "other.example")
                )
            ]
    assert (answers, len(provider.asked)) == ([Answer.APPLIED, Answer.UNAVAILABLE], 1)
