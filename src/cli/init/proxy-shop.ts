import { type Json, type JsonObject } from '../../engine/internal.ts'
import { textAt } from '../json-access.ts'
import { clean } from '../terminal-text.ts'
import { spell, spellDraft, type Draft } from '../route-yaml.ts'
import type { Files } from '../new-files.ts'
import { convertOperations, NOWHERE, serverOf, type Converted } from './operation.ts'
import type { PackageSource } from './package-source.ts'
import { commonFiles } from './shop.ts'

export interface ProxyShop {
  readonly files: Files
  /** What became of each operation, for the operator. */
  readonly lines: readonly string[]
  readonly routes: number
}

/** A shop that sells an API that exists already: every GET as a route, none of them with a price. */
export function sellOpenapi(openapi: JsonObject, name: string, source: PackageSource): ProxyShop {
  const base = serverOf(openapi, NOWHERE)
  const converted = convertOperations(openapi, base)
  const routes = converted.filter((each) => each.kind === 'route')
  const examples = new Map<string, string>()
  const drafts = routes.map(({ draft, example }) => withExample(draft, example, examples))
  const blocks = drafts.map((draft) => spellDraft(draft, '  ').join('\n'))
  const catalog = `${head(openapi).join('\n')}\n${blocks.join('\n\n')}\n`
  const unplaced = base.startsWith(NOWHERE)
    ? [`the document says no address: put yours in the place of ${NOWHERE}`]
    : []
  return {
    files: new Map([['catalog.yaml', catalog], ...examples, ...commonFiles(name, source, 'javascript')]),
    lines: [...converted.flatMap(tell), ...unplaced].map(clean),
    routes: routes.length,
  }
}

/** Long answers stand in files of their own. */
function withExample(draft: Draft, example: Json | undefined, examples: Map<string, string>): Draft {
  if (example === undefined) return draft
  const name = draft.path
    .replace(/^\/paid\//, '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|-+$/g, '')
  const file = `examples/${name}.json`
  examples.set(file, `${JSON.stringify(example, null, 2)}\n`)
  return { ...draft, keys: [...draft.keys, ['example', `./${file}`]] }
}

/** As long as the name of a service may be. */
const NAME = 32

function head(openapi: JsonObject): string[] {
  const info = openapi['info']
  const title = (textAt(info, 'title') ?? '')
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^ -~]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const description = textAt(info, 'description')?.replace(/\s+/g, ' ').trim() ?? ''
  return [
    '# Every route has to have a price before it is served: "ratecard check" says which have none.',
    'catalog: 1',
    '',
    'service:',
    `  name: ${spell(title.slice(0, NAME).trim() || 'My shop')}`,
    `  version: ${spell(textAt(info, 'version') || '1.0.0')}`,
    ...(description === '' ? [] : [`  description: ${spell(description)}`]),
    '',
    '# Who is paid is not in this file: set PAY_TO, an address of yours. The sandbox needs none of it.',
    'payments:',
    '  currency: USD',
    '  x402: { networks: [base] }',
    '',
    'routes:',
  ]
}

function tell(converted: Converted): string[] {
  if (converted.kind === 'left') return [`${converted.title}: left out, for ${converted.reason}`]
  const { title, draft, notes } = converted
  return [`${title}: ${draft.path}`, ...notes.map((note) => `  ${note}`)]
}
