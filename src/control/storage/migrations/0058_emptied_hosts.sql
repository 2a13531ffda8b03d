-- A drained runner whose sandboxes control moves elsewhere.
alter table runners add column is_emptied boolean not null default false;

-- The part of a sandbox's move to another runner. `restart`: it ran, and runs again as soon as it is archived.
-- `restarting`: it is restored elsewhere. `refused`: it could not be moved, and is not tried again by itself.
alter table sandboxes add column emptying text check (emptying in ('restart', 'restarting', 'refused'));
create index sandboxes_emptying on sandboxes (id) where emptying is not null;
