-- Id of this database. A runner keeps its sandboxes if control has another database, which would know none of them. A
-- copy that was restored from a backup has the same id.
create table database_id (id uuid not null default gen_random_uuid());
insert into database_id default values;
