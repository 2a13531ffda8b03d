-- Settings that organizations make. Telemetry headers are credentials, so the whole setting is encrypted. No earlier
-- version could write it, so no data is lost.
alter table organizations drop column otel_config;
alter table organizations add column otel_config text;

create index organizations_by_creator on organizations (created_by);
