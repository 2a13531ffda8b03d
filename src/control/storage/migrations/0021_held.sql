-- What an organization holds in a region, summed whenever it is to hold more; an index that holds all that is asked.
create index sandboxes_held on sandboxes (organization_id, region_id, sandbox_class, state, desired_state)
  include (id, cpu, memory_gib, disk_gib) where state <> 'destroyed' and warm_pool_id is null;
