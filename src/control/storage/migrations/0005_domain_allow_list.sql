-- Names that a sandbox may reach, besides the CIDRs.

alter table sandboxes add column domain_allow_list text[];
