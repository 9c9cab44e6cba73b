import type { JsonObject } from '../../json.ts'

/** What a person types or pastes so that a client knows a server. */
export interface Setup {
  readonly client: string
  readonly where: string
  readonly language: 'sh' | 'json'
  readonly text: string
}

/** For each client whose form is its own; all of them speak streamable HTTP, one through a bridge. */
export function setupsFor(name: string, url: string): Setup[] {
  return [
    {
      client: 'Claude Code',
      where: 'in a terminal',
      language: 'sh',
      text: `claude mcp add --transport http ${name} ${url}`,
    },
    {
      client: 'Claude Code, for a whole project',
      where: '.mcp.json',
      language: 'json',
      text: print({ mcpServers: { [name]: { type: 'http', url } } }),
    },
    {
      client: 'Claude Desktop',
      where: 'claude_desktop_config.json, or add the address under Settings, Connectors',
      language: 'json',
      text: print({ mcpServers: { [name]: { command: 'npx', args: ['-y', 'mcp-remote', url] } } }),
    },
    {
      client: 'Cursor',
      where: '.cursor/mcp.json',
      language: 'json',
      text: print({ mcpServers: { [name]: { url } } }),
    },
    {
      client: 'VS Code',
      where: '.vscode/mcp.json',
      language: 'json',
      text: print({ servers: { [name]: { type: 'http', url } } }),
    },
  ]
}

function print(value: JsonObject): string {
  return JSON.stringify(value, undefined, 2)
}
