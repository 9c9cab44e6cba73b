import { defineDocument } from './document.ts'

/** The line that lets its key’s owner publish MCP servers under this domain’s name: exactly as the catalog has it. */
export const mcpRegistryAuth = defineDocument(
  'mcp-registry-auth',
  ({ service }) => service.mcpRegistryAuth ?? '',
)
