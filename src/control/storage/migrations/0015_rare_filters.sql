-- Filters that often leave nothing of an organization: without these its 50,000 sandboxes are read, in 33 ms, and with them none.

create index sandboxes_by_class on sandboxes (organization_id, sandbox_class) where state <> 'destroyed';
create index sandboxes_by_region on sandboxes (organization_id, region_id) where state <> 'destroyed';
create index sandboxes_recoverable on sandboxes (organization_id)
  where coalesce(recoverable, false) and state <> 'destroyed';

-- The planner takes half of all sandboxes for recoverable and any beginning of a name for rare, unless it has counted. A
-- beginning that one in five has, by another sort: 33 ms before, 0.4 ms after.
create statistics sandboxes_recoverable_share on (coalesce(recoverable, false)) from sandboxes;
create statistics sandboxes_lower_name on (lower(name)) from sandboxes;
