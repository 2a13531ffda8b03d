-- The credentials of the services of an organization's own region. Keys are stored as SHA-256 in lower-case hex. The
-- password of the snapshot manager is encrypted, because runners must send it.
alter table regions
  add column proxy_key_hash text unique check (proxy_key_hash ~ '^[0-9a-f]{64}$'),
  add column ssh_gateway_key_hash text unique check (ssh_gateway_key_hash ~ '^[0-9a-f]{64}$'),
  add column snapshot_manager_username text,
  add column snapshot_manager_password text;
