import { error, type Issue, warning } from './issue.ts'
import type { Path } from './source.ts'
import { handlerOf, readText, routesOf, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

/** Every name that points elsewhere in the catalog, or at a file, finds what it points at. */
export function checkReferences(subject: Subject): Issue[] {
  const { declared } = subject
  const faces = [
    ...routesOf(declared).map(({ route, at }) => ({ entry: route, at })),
    ...Object.entries(declared.tools ?? {}).map(([name, entry]) => ({ entry, at: ['tools', name] })),
  ]
  const each = faces.flatMap(({ entry, at }) => [
    ...checkName(subject, entry.category, [...at, 'category'], 'category', declared.categories),
    ...(entry.sources ?? []).flatMap((name, index) =>
      checkName(subject, name, [...at, 'sources', index], 'source', declared.sources ?? {}),
    ),
    ...checkExample(subject, entry.example, [...at, 'example']),
  ])
  return [
    ...together([...each, ...checkToolNames(subject)]),
    ...checkSkills(subject),
    ...checkPlanned(subject),
  ]
}

/** A name that is misspelt where it is declared is unknown wherever it is used: told once, with every line. */
function together(issues: readonly Issue[]): Issue[] {
  const groups = new Map<string, Issue[]>()
  for (const issue of issues) {
    const group = groups.get(issue.message)
    if (group === undefined) groups.set(issue.message, [issue])
    else group.push(issue)
  }
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined || others.length === 0) return first ?? []
    const lines = others.map(({ position }) => position.line).join(', ')
    return { ...first, message: `${first.message} (also on line ${lines})` }
  })
}

const SECTIONS = { category: 'categories', source: 'sources' } as const

function checkName(
  { document }: Subject,
  name: string | undefined,
  at: Path,
  what: 'category' | 'source',
  known: Readonly<Record<string, unknown>> | undefined,
): Issue[] {
  if (name === undefined || known === undefined || Object.hasOwn(known, name)) return []
  // Declared, but with a fault of its own.
  if (document.has([SECTIONS[what], name])) return []
  const names = Object.keys(known)
  return [
    error(
      `${what}_unknown`,
      document.at(at),
      `there is no ${what} "${name}"${didYouMean(name, names) || `; declare it under ${SECTIONS[what]}`}`,
    ),
  ]
}

function checkExample(subject: Subject, example: unknown, at: Path): Issue[] {
  const { document } = subject
  if (typeof example !== 'string') return []
  if (!example.startsWith('./')) {
    return [
      error('file_path_invalid', document.at(at), 'an example is inline JSON, or a file: ./folder/file.json'),
    ]
  }
  const text = readText(subject, example)
  if (text === undefined)
    return [
      error(
        'example_unreadable',
        document.at(at),
        `${example} cannot be read; files are named from the catalog’s folder`,
      ),
    ]
  try {
    JSON.parse(text)
    return []
  } catch {
    return [error('example_not_json', document.at(at), `${example} is not JSON`)]
  }
}

/** A tool is named once, on a server that exists. */
function checkToolNames(subject: Subject): Issue[] {
  const { declared, document } = subject
  const servers = declared.mcp_servers ?? {}
  const taken = new Map<string, number>()
  const named = [
    ...routesOf(declared).flatMap(({ route, at }) => {
      const [server = '', tool = ''] = (route.tool ?? '').split('.')
      const position = document.at([...at, 'tool'])
      return route.tool === undefined ? [] : [{ server, tool, position, name: position }]
    }),
    ...Object.entries(declared.tools ?? {})
      .filter(([tool]) => document.has(['tools', tool, 'server']))
      .map(([tool, { server }]) => ({
        server,
        tool,
        position: document.at(['tools', tool, 'server']),
        name: document.atKey(['tools', tool]),
      })),
  ]
  return named.flatMap(({ server, tool, position, name }) => {
    if (!Object.hasOwn(servers, server)) {
      if (document.has(['mcp_servers', server])) return []
      return [
        error(
          'server_unknown',
          position,
          `there is no server "${server}" under mcp_servers${didYouMean(server, Object.keys(servers)) || '; declare it there'}`,
        ),
      ]
    }
    const line = taken.get(`${server}.${tool}`)
    taken.set(`${server}.${tool}`, name.line)
    return line === undefined
      ? []
      : [
          error(
            'tool_repeated',
            name,
            `${server}.${tool} is named already on line ${line}; give one another name`,
          ),
        ]
  })
}

function checkSkills({ declared, document }: Subject): Issue[] {
  const taken = new Map<string, number>()
  const faces = [
    ...routesOf(declared).map(({ route, at }) => ({ skill: route.skill, at: [...at, 'skill'] })),
    ...Object.entries(declared.tools ?? {}).map(([name, { skill }]) => ({
      skill,
      at: ['tools', name, 'skill'],
    })),
  ]
  return faces.flatMap(({ skill, at }) => {
    if (skill === undefined) return []
    const position = document.at(at)
    const line = taken.get(skill)
    taken.set(skill, position.line)
    return line === undefined
      ? []
      : [
          error(
            'skill_repeated',
            position,
            `the skill "${skill}" stands already on line ${line}; give one another name`,
          ),
        ]
  })
}

function checkPlanned({ declared, document, handlers }: Subject): Issue[] {
  return routesOf(declared).flatMap((place) => {
    const handler = handlerOf(place)
    if (place.route.planned !== true || handlers?.includes(handler) !== true) return []
    const at = document.at([...place.at, 'planned'])
    return [
      warning(
        'planned_but_written',
        at,
        `the handler ${handler} exists: remove "planned" to sell ${place.path}`,
      ),
    ]
  })
}

/** Who is to be known to a tool can be known: a payer where something is paid, a signer where nothing is. */
export function checkTools({ declared, document }: Subject): Issue[] {
  return Object.entries(declared.tools ?? {}).flatMap(([name, { requires }]) => {
    const spelling = document.spelling(['tools', name, 'price'])
    const position = document.at(['tools', name, 'requires'])
    if (requires === 'payer' && spelling === 'free') {
      const sentence = `nobody pays for ${name}, so no payer is known: give it a price, or write "requires: signer"`
      return [error('payer_without_price', position, sentence)]
    }
    if (requires === 'signer' && spelling !== undefined && spelling !== 'free') {
      const sentence = `${name} is paid for, and a payment tells who signed it: write "requires: payer", or "price: free"`
      return [error('signer_with_price', position, sentence)]
    }
    return []
  })
}
