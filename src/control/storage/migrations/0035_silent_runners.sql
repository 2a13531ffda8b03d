-- Whether a runner is heard, besides what the operator wants of it: one that is drained can be silent as well.
alter table runners add column is_silent boolean not null default false;
update runners set is_silent = true where state = 'unresponsive';
