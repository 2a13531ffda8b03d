-- Which database this is. A runner keeps the sandboxes of one from another, which would know none of them; a copy that was
-- restored from a backup is the same one.
create table database_id (id uuid not null default gen_random_uuid());
insert into database_id default values;
