-- Where the telemetry of a sandbox goes: what its creator said, and else its region; the second is what counts.
alter table sandboxes add column otel_endpoint_override text;
alter table sandboxes add column otel_endpoint text;

update sandboxes set otel_endpoint = regions.otel_endpoint from regions
where regions.id = region_id and regions.otel_endpoint is not null and state <> 'destroyed';
