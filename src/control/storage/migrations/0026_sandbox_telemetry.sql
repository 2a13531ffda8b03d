-- Telemetry endpoints of a sandbox: the one that its creator gave, and the one in use, which may be the region's.
alter table sandboxes add column otel_endpoint_override text;
alter table sandboxes add column otel_endpoint text;

update sandboxes set otel_endpoint = regions.otel_endpoint from regions
where regions.id = region_id and regions.otel_endpoint is not null and state <> 'destroyed';
