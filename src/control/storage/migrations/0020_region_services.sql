-- How the services of an organization's own region prove who they are. Keys are kept as sha256, lower hex; the password of the
-- snapshot manager has to be said to it by runners, so it is encrypted.
alter table regions
  add column proxy_key_hash text unique check (proxy_key_hash ~ '^[0-9a-f]{64}$'),
  add column ssh_gateway_key_hash text unique check (ssh_gateway_key_hash ~ '^[0-9a-f]{64}$'),
  add column snapshot_manager_username text,
  add column snapshot_manager_password text;
