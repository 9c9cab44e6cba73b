import { CatalogError, catalogSchema } from '../engine/index.ts'
import type { Command } from './command.ts'
import { previewRevision } from './preview.ts'

export const print: Command = {
  name: 'print',
  summary: 'print a generated document, or the catalog’s JSON Schema, without a server',
  usage: 'print <served path or schema> [--catalog F] [--handlers DIR]',
  takes: 1,
  examples: ['ratecard print /openapi.json', 'ratecard print schema > catalog.schema.json'],
  options: { catalog: { type: 'string' }, handlers: { type: 'string' } },
  run: async (call) => {
    const { positionals, flags, terminal, env } = call
    const [what] = positionals
    if (what === undefined) {
      terminal.err('ratecard print: say which: a path such as /openapi.json, or schema')
      return 64
    }
    if (what === 'schema') {
      terminal.out(JSON.stringify(catalogSchema, null, 2))
      return 0
    }
    try {
      const { revision } = await previewRevision(call, flags.text('catalog') ?? env.catalog)
      const { pages } = revision
      const page = pages.get(what)
      if (page !== undefined && !page.planned) {
        terminal.out(page.body.toString().replace(/\n$/, ''))
        return 0
      }
      const known = [...pages].filter(([, { planned }]) => !planned).map(([path]) => path)
      terminal.err(`ratecard print: no document is served at ${what}; there are: ${known.join(', ')}`)
      return 1
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      terminal.err(fault.message)
      return 1
    }
  },
}
