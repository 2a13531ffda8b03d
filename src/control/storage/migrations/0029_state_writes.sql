-- Makes writes of a state cheaper.

-- Events are only read by sandbox.
alter table sandbox_events drop constraint sandbox_events_pkey, add primary key (sandbox_id, id);
drop index sandbox_events_of_sandbox;

-- Most organizations have no endpoint, so this is checked first.
create or replace function tell_webhooks_of_sandbox() returns trigger language plpgsql as $$
begin
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  -- A warm sandbox is announced as created when it is claimed.
  if tg_op = 'INSERT' or old.warm_pool_id is not null then
    perform tell_webhooks(new.organization_id, 'sandbox.created', new.id, new.name, new.sandbox_class, null, new.state,
      new.created_at);
  else
    perform tell_webhooks(new.organization_id, 'sandbox.state.updated', new.id, new.name, new.sandbox_class, old.state,
      new.state, new.updated_at);
  end if;
  return null;
end $$;
