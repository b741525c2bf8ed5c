"""Parts of HTTP/1.1 requests, valid and broken, of which conversations are made."""

from __future__ import annotations

HOST = "host: 127.0.0.1"
UPGRADES = (
    *("h2c", "websocket", "WebSocket", "websocket, h2c", "TLS/1.0", "h2c, websocket", "", "\x01"),
    "foo/2",
)
CONNECTIONS = (
    *("upgrade", "Upgrade, HTTP2-Settings", "keep-alive, Upgrade", "close, upgrade"),
    *("upgrade, close", "keep-alive", "upgrade,,", ",", "te, upgrade"),
)
SOCKET_KEYS = ("dGhlIHNhbXBsZSBub25jZQ==", "short", "", "%%%")
LENGTHS = (
    *(
        *("+4", "-4", "4, 4", "4,5", "0x4", "4 4", "", "4;", "1e1", "\x0b4", "4\t5"),
        "\xef\xbc\x99",
    ),
    *(
        "99999999999999999999",
        "18446744073709551616",
        "4\r\ncontent-length: 4",
        "4\r\nContent-Length: 9",
    ),
)
CODINGS = (
    *(
        *("chunked, chunked", "gzip, chunked", "chunked, gzip", "identity", "xchunked"),
        *("chunked;q=1", ""),
    ),
    *(
        "\x0bchunked",
        "chunked\r\ntransfer-encoding: chunked",
        "chunked\r\ncontent-length: 5",
        '"chunked"',
    ),
    "chunked\r\ntransfer-encoding: identity",
)
VERSIONS = (
    *("HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/1.1 ", "http/1.1", "HTTP/1", "HTTP/11"),
    *("RTSP/1.0", "ICE/1.0", "", "HTTP/1.1\r\n\r\n", "HTTPS/1.1", "HTTP/1.1x"),
)
METHODS = (
    *(
        *("get", "CONNECT", "PRI", "SOURCE", "M-SEARCH", "ANNOUNCE", "QUERY", "PURGE", "G\x00T"),
        *("GE T", ""),
    ),
    *("TRACE", "LOCK", "BREW", "DESCRIBE", "(GET)", "GET:", "X" * 70),
)
TARGETS = (
    *("*", "/v1/models#f", "/v1/mo dels", "//127.0.0.1/v1/models", "127.0.0.1:80", "v1/models", ""),
    *(
        "http://127.0.0.1/v1/models",
        "http://evil.example/v1/models",
        "/%00",
        "/v1/models?a=%zz&\xe9",
    ),
    *("/v1/models?#", "http://", "?", "/..;/..", "/\x7f", "/v1/%ff", "http://[::1/", "/v1\\models"),
    "/" + "a" * 17_000,
)
ODD_HEADERS = (
    *(
        *("x-one : 1", ": 1", "x-one", "x one: 1", "x-one: a\0b", "x-one: a\x1cb", " x-folded: 1"),
        "\tx: 1",
    ),
    *("x-one: 1\nx-two: 2", "x-one: 1\rx-two: 2", "x-one: 1\r\n folded", "x(y): 1", "x\xe9: 1"),
    *("host: 127.0.0.1", "host: evil.example", "host:", "x-long: " + "a" * 40_000, "\x00: 1"),
    "\r\n".join(f"x-{number}: 1" for number in range(110)),
)
HARMLESS = (
    *(
        *("x-one: \xe9\xff", "x-empty:", "x-tab:\ta\tb\t ", "accept: */*;q=0", "te: trailers"),
        "cookie: a=b; c",
    ),
    *(
        "expect: 100-continue",
        "x-forwarded-for: 1, ,\xff",
        "max-forwards: 0",
        "http2-settings: AAMAAABkAAQ",
    ),
    *(
        *("priority: u=1", "user-agent:", "trailer: host", "range: bytes=0-0", "if-match: *"),
        "via: 1.0 x",
    ),
    *(
        "proxy-connection: upgrade",
        "keep-alive: 0",
        "x-http-method-override: DELETE",
        "!#$%&'*+-.^_`|~: 1",
    ),
)
PIECES = (
    *(
        *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\r\n\r\n", b"0\r\n\r\n"),
        b"GET / HTTP/1.1\r\n",
    ),
    *(
        b"content-length: 5\r\n",
        b"transfer-encoding: chunked\r\n",
        b"connection: upgrade\r\n",
        b"CONNECT ",
    ),
    *(
        b"upgrade: h2c\r\n",
        b"upgrade: websocket\r\n",
        b"expect: 100-continue\r\n",
        b"host: 127.0.0.1\r\n",
    ),
    *(
        *(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"HTTP/1.0", b"\xff"),
        b"ffffffff",
    ),
)
