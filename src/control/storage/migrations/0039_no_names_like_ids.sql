-- A name that looks like an id, or like the token of a signed preview, could occur in another sandbox's address
-- (src/control/id-like.ts). Such names get a random suffix, and the timeline records that.
with renamed as (
  update sandboxes set name = name || '-' || left(md5(id || random()::text), 12)
  where name <> id and (name ~* '^\s*(urn:)?(uuid:)?[({[]?([0-9a-f][-_.:\s]*){32}[])}]?\s*$' or name ~* '^[a-z0-9]{16}$')
  returning id, organization_id, state, name
)
insert into sandbox_events (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason)
select id, organization_id, state, state, now(), 'timer', 'upgrade',
  'Renamed to "' || name || '": names may no longer look like ids or tokens.'
from renamed;

update snapshots set name = name || '-' || left(md5(id || random()::text), 12)
where name <> id and name ~* '^(urn:)?(uuid:)?[({[]?([0-9a-f][-_.:]*){32}[])}]?$';
