import { generateTypes } from '../engine/catalog/generate-types.ts'
import { loadCatalog } from '../engine/catalog/load-catalog.ts'
import { catalogSchema } from '../engine/catalog/schema.ts'
import { documentNames } from '../engine/documents/all.ts'
import { listedServers } from '../engine/documents/mcp-servers.ts'
import { renderServerJson } from '../engine/documents/server-card.ts'
import type { Revision } from '../engine/http/revision.ts'
import type { Call } from './command.ts'
import { replaceFile } from './new-files.ts'
import { previewRevision } from './preview.ts'

export async function print(call: Call): Promise<number> {
  const { positionals, flags, terminal, env } = call
  const [what] = positionals
  if (what === undefined) {
    terminal.err(
      'ratecard print: missing argument: a path such as /openapi.json, schema, or mcp/game/server.json',
    )
    return 64
  }
  if (what === 'schema') {
    terminal.out(JSON.stringify(catalogSchema, null, 2))
    return 0
  }
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
}

/** Whatever can be printed of this revision, by its name: served paths, and what is sent to the MCP registry. */
function printedOf({ pages, catalog, facts }: Revision): ReadonlyMap<string, () => string> {
  const served = [...pages].filter(([, { planned }]) => !planned)
  return new Map([
    ...served.map(([path, { body }]): [string, () => string] => [path, () => Buffer.from(body).toString()]),
    ...listedServers(catalog, facts).map((server): [string, () => string] => [
      `mcp/${server.name}/server.json`,
      () => renderServerJson(catalog, facts, server),
    ]),
  ])
}

export async function types({ positionals, flags, terminal, env }: Call): Promise<number> {
  // Handlers that are not written yet are what the types are for.
  const { catalog } = loadCatalog(positionals[0] ?? env.catalog, {
    documents: documentNames,
    handlers: undefined,
  })
  const text = generateTypes(catalog, flags.text('engine') ?? 'ratecard/handler')
  const file = flags.text('out')
  if (file === undefined) terminal.out(text.trimEnd())
  else replaceFile(file, text)
  return 0
}
