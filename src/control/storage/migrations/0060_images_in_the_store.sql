-- Whether the operator has named the archive store of a runner, so that other runners can have the same one. Snapshots of
-- sandboxes are put only into such a store.
alter table runners add column shares_store boolean not null default false;
