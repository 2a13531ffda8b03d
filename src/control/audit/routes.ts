// The endpoints `/audit`: who changed what, from where, and with what result.
import { type ControlRoute, route } from '../auth/route.ts'
import { listScenarios } from './scenarios.ts'
import { AuditPage, AuditQuery, AuditScenarios, OrganizationId, ServerAuditQuery } from './schemas.ts'
import { type AuditParts, listAudit } from './service.ts'

export const auditRoutes = (parts: AuditParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/audit',
    needs: 'admin',
    summary: 'Lists the audit log of the whole server, newest entries first (Alcove only).',
    query: ServerAuditQuery,
    replies: { 200: AuditPage },
    run: ({ query }) => listAudit(parts, query.organizationId, query),
  }),
  route({
    method: 'GET',
    path: '/audit/scenarios',
    needs: 'user',
    summary: 'Lists the actions that the audit log can contain, grouped by type of target.',
    replies: { 200: AuditScenarios },
    run: () => ({ targets: listScenarios() }),
  }),
  route({
    method: 'GET',
    path: '/audit/organizations/:organizationId',
    needs: 'read:audit_logs',
    summary: 'Lists the audit log of an organization, newest entries first.',
    params: OrganizationId,
    query: AuditQuery,
    replies: { 200: AuditPage },
    run: ({ organization, query }) => listAudit(parts, organization.id, query),
  }),
]
