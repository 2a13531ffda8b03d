-- Domain names that a sandbox may reach, in addition to the CIDRs.

alter table sandboxes add column domain_allow_list text[];
