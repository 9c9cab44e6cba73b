import { CatalogError, declareHandlers, loadCatalog } from '../engine/index.ts'
import type { Command } from './command.ts'

export const types: Command = {
  name: 'types',
  summary: 'print the TypeScript types of the handlers a catalog asks for',
  usage: 'types [catalog.yaml] [--engine MODULE]',
  takes: 1,
  examples: ['ratecard types > src/handlers/catalog.ts'],
  options: { engine: { type: 'string' } },
  run: async ({ positionals, flags, terminal, known, env }) => {
    try {
      // Handlers that are not written yet are what the types are for.
      const { catalog } = loadCatalog(positionals[0] ?? env.catalog, { ...known, handlers: undefined })
      terminal.out(declareHandlers(catalog, flags.text('engine') ?? 'ratecard').trimEnd())
      return 0
    } catch (fault) {
      if (!(fault instanceof CatalogError)) throw fault
      terminal.err(fault.message)
      return 1
    }
  },
}
