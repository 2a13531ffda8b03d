-- The network (IPv4 address or IPv6 /48) that began a record without an account. If there are too many, the network
-- with the most loses its oldest.
alter table issuer_records add column source text;
