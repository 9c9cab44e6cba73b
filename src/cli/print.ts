import {
  CatalogError,
  catalogSchema,
  listedServers,
  renderServerJson,
  type Revision,
} from '../engine/index.ts'
import type { Command } from './command.ts'
import { previewRevision } from './preview.ts'

export const print: Command = {
  name: 'print',
  summary:
    'print a generated document, the catalog’s JSON Schema, or what the MCP registry takes, without a server',
  usage: 'print <served path, schema, or mcp/NAME/server.json> [--catalog F] [--handlers DIR]',
  takes: 1,
  examples: [
    'ratecard print /openapi.json',
    'ratecard print schema > catalog.schema.json',
    'BASE_URL=https://api.example.com ratecard print mcp/game/server.json > server.json',
  ],
  options: { catalog: { type: 'string' }, handlers: { type: 'string' } },
  run: async (call) => {
    const { positionals, flags, terminal, env } = call
    const [what] = positionals
    if (what === undefined) {
      terminal.err('ratecard print: say which: a path such as /openapi.json, schema, or mcp/game/server.json')
      return 64
    }
    if (what === 'schema') {
      terminal.out(JSON.stringify(catalogSchema, null, 2))
      return 0
    }
    try {
      const { revision } = await previewRevision(call, flags.text('catalog') ?? env.catalog)
      const printed = printedOf(revision)
      const text = printed.get(what)
      if (text !== undefined) {
        terminal.out(text().replace(/\n$/, ''))
        return 0
      }
      terminal.err(
        `ratecard print: no document is served at ${what}; there are: ${[...printed.keys()].join(', ')}`,
      )
      return 1
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      terminal.err(fault.message)
      return 1
    }
  },
}

/** Whatever can be printed of this revision, by its name: served paths, and what is sent to the MCP registry. */
function printedOf({ pages, catalog, facts }: Revision): ReadonlyMap<string, () => string> {
  const served = [...pages].filter(([, { planned }]) => !planned)
  return new Map([
    ...served.map(([path, { body }]): [string, () => string] => [path, () => body.toString()]),
    ...listedServers(catalog, facts).map((server): [string, () => string] => [
      `mcp/${server.name}/server.json`,
      () => renderServerJson(catalog, facts, server),
    ]),
  ])
}
