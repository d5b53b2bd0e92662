# Makes spectrod@.service, the unit of instances, from spectrod.service: `make install` runs it.
# Each instance has a configuration and folders of its own, so that none removes another's.
s|^Description=.*|& (%i)|
s|/etc/spectrod/spectrod\.toml|/etc/spectrod/%i.toml|
s|^\([A-Za-z]*Directory=\)spectrod$|\1spectrod-%i|
s|%[CLSt]/spectrod|&-%i|g
s|each /spectrod\.|each /spectrod-NAME.|
1s|.*|# An instance of spectrod, spectrod@NAME: /etc/spectrod/NAME.toml. docs/service.md explains it.|
