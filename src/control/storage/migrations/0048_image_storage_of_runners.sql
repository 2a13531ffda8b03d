-- Disk space that images use on the runner, from its last heartbeat. Null: the runner has not reported it, or is older
-- than this field.
alter table runners add column image_storage jsonb;
