-- Whether the runner is silent, independent of what the operator has set: a drained runner can be silent too.
alter table runners add column is_silent boolean not null default false;
update runners set is_silent = true where state = 'unresponsive';
