"""Decides which IP addresses this gateway may connect to.

Host names are not checked here: a name can resolve to another address between a check and a
connection, so ``core.backends.outbound`` checks the address that it connects to.
"""

from __future__ import annotations

import ipaddress
import socket

from django.conf import settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = tuple(
    ipaddress.ip_network(network)
    for network in (
        "fd00:ec2::/32",  # EC2 over IPv6
        "fd20:ce::254/128",  # Google Cloud over IPv6
        "100.100.100.200/32",  # Alibaba Cloud
        "168.63.129.16/32",  # Azure's wire server
        "192.0.0.192/32",  # Oracle Cloud
    )
)
"""Instance metadata that is not link-local; the usual 169.254.169.254 is."""

_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")  # RFC 1122, section 3.2.1.3: no destination
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


def refusal(address: Address) -> str | None:
    """Say, for an operator, why ``address`` is refused as a backend's; ``None`` when it is allowed.

    Link-local, metadata, unspecified and multicast addresses are always refused. Addresses that
    are not reachable from the internet (RFC 1918, shared, unique local, loopback) are allowed
    while ``SVC_BACKEND_PRIVATE_ADDRESSES`` is true.
    """
    for each in (address, *_carried(address)):
        if each.is_link_local or any(each in network for network in _METADATA):
            return "Link-local and instance-metadata addresses are no backends."
        if each.is_multicast or each.is_unspecified or each in _THIS_NETWORK or _broadcast(each):
            return "This address names no single host. Give the backend's own."
        if not settings.SVC_BACKEND_PRIVATE_ADDRESSES and not each.is_global:
            return (
                "This address is private, and SVC_BACKEND_PRIVATE_ADDRESSES is false: only public "
                "addresses are backends here."
            )
    return None


def is_this_machine(host: str) -> bool:
    """Whether ``host``, as a Host header or ``ALLOWED_HOSTS`` writes it, can mean this machine only."""
    name = host.strip("[]").lstrip(".").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def literal(host: str) -> Address | None:
    """Parse ``host`` as an address, in any form that the resolver takes; ``None`` for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            # Shortened, octal, hexadecimal and single-number forms, which the resolver takes too.
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None


def _carried(address: Address) -> list[Address]:
    """The IPv4 address inside an IPv6 one: mapped, translated or tunnelled."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)]
    teredo = address.teredo
    found = (address.ipv4_mapped, address.sixtofour, teredo[1] if teredo else None)
    return [each for each in found if each is not None]


def _broadcast(address: Address) -> bool:
    return address == ipaddress.IPv4Address("255.255.255.255")
