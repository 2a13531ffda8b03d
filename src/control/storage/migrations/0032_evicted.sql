-- Listings that ask for what is destroyed find what was evicted within a day.
create index sandboxes_evicted on sandboxes (organization_id, spot_evicted_at) where spot_evicted_at is not null;
