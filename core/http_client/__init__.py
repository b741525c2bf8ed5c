"""A lean HTTP/1.1 client for model servers and speech servers, on asyncio's Protocol and llhttp.

It knows what a gateway has to know: whether a failed request can have run (``request``). It leaves out
what a gateway does not use: redirects, cookies, proxies, decompression, upgrades, pipelining.
"""
