-- What organizations keep for themselves. Telemetry headers are credentials, so all of it is encrypted; nobody could write
-- any before.
alter table organizations drop column otel_config;
alter table organizations add column otel_config text;

create index organizations_by_creator on organizations (created_by);
