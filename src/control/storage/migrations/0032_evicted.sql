-- For listings of destroyed sandboxes, which include sandboxes that were evicted within a day.
create index sandboxes_evicted on sandboxes (organization_id, spot_evicted_at) where spot_evicted_at is not null;
