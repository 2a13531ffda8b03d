-- The gate through which the sandboxes of a runner are reached, as the runner reports it.
alter table runners
  -- Id of the gate: that of its machine's runner, or 'local' on the server's own machine. Null: gates use `address`.
  add column gate_id text,
  -- Where the gate listens for other gates: host and port. Null: it does not listen for them.
  add column gate_address text,
  -- The URL at which clients reach the gate directly. Null: they use the server's gate.
  add column gate_public_url text;
