-- The network (IPv4 address or IPv6 /48) that began what is nobody's yet: of too many, the one with most gives way.
alter table issuer_records add column source text;
