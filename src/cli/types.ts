import { generateTypes, documentNames, loadCatalog } from '../engine/index.ts'
import type { Call } from './command.ts'

export async function types({ positionals, flags, terminal, env }: Call): Promise<number> {
  // Handlers that are not written yet are what the types are for.
  const { catalog } = loadCatalog(positionals[0] ?? env.catalog, {
    documents: documentNames,
    handlers: undefined,
  })
  terminal.out(generateTypes(catalog, flags.text('engine') ?? 'ratecard').trimEnd())
  return 0
}
