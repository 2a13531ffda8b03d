-- What images take of a runner's disk, as its last heartbeat said. Null: it has not said, or is older.
alter table runners add column image_storage jsonb;
