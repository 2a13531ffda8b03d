-- For the sum of the resources that an organization uses in a region, before each increase. The index has all columns
-- of the sum.
create index sandboxes_held on sandboxes (organization_id, region_id, sandbox_class, state, desired_state)
  include (id, cpu, memory_gib, disk_gib) where state <> 'destroyed' and warm_pool_id is null;
