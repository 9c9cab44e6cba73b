/** Everything that is made from the table of settings, by the path of its file. */
import { readFileSync } from 'node:fs'
import { format, resolveConfig } from 'prettier'
import { NETWORKS, TEMPO_NETWORKS } from '../src/engine/base/networks.ts'
import { GROUPS, SETTINGS, settingsInOrder, type Group } from '../src/settings.ts'

const ROOT = new URL('../', import.meta.url)

type Row = ReturnType<typeof settingsInOrder>[number][1]

const rows = settingsInOrder().map(([, setting]) => setting)

/** The interfaces of the options, by their path. */
const INTERFACES = {
  '': ['RatecardOptions', 'What {@link createRatecard} is given.'],
  payments: ['PaymentOptions', 'The protocols that buyers pay with, as far as the catalog offers them.'],
  'payments.x402': [
    'X402Options',
    'x402 v2, scheme `exact`. A network is offered when it can settle: either `facilitators` are given, or an RPC URL for it and `signerKeys`.',
  ],
  'payments.mpp': ['MppOptions', 'MPP with the payment method `tempo`; offered when all of them are given.'],
} as const

/** Options that hold others, with their text. */
const NESTED: Readonly<Record<string, string>> = {
  payments: 'How buyers pay. A catalog without paid routes needs none.',
  'payments.x402': 'Payments with x402.',
  'payments.mpp': 'Payments with MPP.',
}

function parentOf(option: string): string {
  return option.split('.').slice(0, -1).join('.')
}

function docstring(text: string, indent: string): string {
  return text.length > 100
    ? `${indent}/**\n${wrap(text, `${indent} * `)}\n${indent} */`
    : `${indent}/** ${text} */`
}

function wrap(text: string, before: string): string {
  const lines: string[] = []
  let line = before
  for (const word of text.split(' ')) {
    if (line.length + word.length > 108 && line !== before) {
      lines.push(line.trimEnd())
      line = before
    }
    line += `${word} `
  }
  return [...lines, line.trimEnd()].join('\n')
}

function defaultOf({ default: value, otherwise }: Row): string | undefined {
  return otherwise ?? (value === undefined ? undefined : `\`${value === '0' ? 'false' : value}\``)
}

function member(row: Row): string {
  const { option = '', type = 'string', required, text } = row
  const name = option.split('.').at(-1)
  const usual = required === true ? undefined : defaultOf(row)
  const whole = usual === undefined ? text : `${text} Default: ${usual}.`
  return `${docstring(whole, '  ')}\n  readonly ${name}${required === true ? '' : '?'}: ${type}${required === true ? '' : ' | undefined'}`
}

function interfaceOf([path, [name, text]]: [string, readonly [string, string]]): string {
  const own = rows.flatMap((row) =>
    row.option !== undefined && parentOf(row.option) === path ? [member(row)] : [],
  )
  const inner = Object.entries(INTERFACES).flatMap(([at, [type]]) =>
    at !== '' && parentOf(at) === path
      ? [`${docstring(NESTED[at] ?? '', '  ')}\n  readonly ${at.split('.').at(-1)}?: ${type} | undefined`]
      : [],
  )
  return `${docstring(text, '')}\nexport interface ${name} {\n${[...own, ...inner].join('\n')}\n}`
}

const MODULE = `// Generated from src/settings.ts by \`npm run generate\`. Do not edit.
import type { Observe } from '../base/access-record.ts'
import type { HandlerMap } from '../handler.ts'
import type { ServiceDefinition } from '../service-definition.ts'
import type { OpenScheme } from '../x402/scheme.ts'
import type { CatalogPlace } from './catalog-thread.ts'
import type { FacilitatorOptions, Logger, RuntimeOptions, Secrets } from './option-values.ts'

${Object.entries(INTERFACES).map(interfaceOf).join('\n\n')}

/** The names of all options, by the path of the object that holds them. */
export const OPTION_NAMES: Readonly<Record<string, readonly string[]>> = ${JSON.stringify(
  Object.fromEntries(
    Object.keys(INTERFACES).map((path) => [
      path,
      [
        ...rows.flatMap(({ option }) => (option !== undefined && parentOf(option) === path ? [option] : [])),
        ...Object.keys(NESTED).filter((each) => parentOf(each) === path),
      ].map((option) => option.split('.').at(-1)),
    ]),
  ),
)}
`

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

const OPTIONS_TABLE = [
  '| Option | Variable of the command | Meaning | Default |',
  '| --- | --- | --- | --- |',
  ...rows.flatMap((row) => {
    const { option, variable, text } = row
    if (option === undefined) return []
    const usual = row.required === true ? 'required' : (defaultOf(row) ?? '')
    return [
      `| \`${option}\` | ${variable === undefined ? '' : `\`${variable}\``} | ${cell(text)} | ${cell(usual)} |`,
    ]
  }),
].join('\n')

const VARIABLES_TABLE = [
  '| Variable | Meaning | Default |',
  '| --- | --- | --- |',
  ...rows.flatMap(({ variable, text, default: value, otherwise }) =>
    variable === undefined
      ? []
      : [
          `| \`${variable}\` | ${cell(text)} | ${cell(otherwise ?? (value === undefined ? 'none' : `\`${value}\``))} |`,
        ],
  ),
].join('\n')

/** Lines of an environment file. Those of the first group are set by everybody. */
function environment(groups: readonly Group[]): string {
  return groups
    .map((group) =>
      [
        `## ${GROUPS[group].replaceAll('`', '')}`,
        '',
        ...rows.flatMap(({ group: own, variable, text, default: value, example, otherwise }) =>
          own !== group || variable === undefined
            ? []
            : [
                `# ${text.replaceAll('`', '')}${variable === SETTINGS.rpcUrls.variable ? ` ${networkNames()}` : ''}`,
                ...(otherwise === undefined || otherwise === 'none'
                  ? []
                  : [`# Unset: ${otherwise.replaceAll('`', '')}.`]),
                `${group === 'first' ? '' : '#'}${variable}=${value ?? example ?? ''}`,
              ],
        ),
      ].join('\n'),
    )
    .join('\n\n')
}

function networkNames(): string {
  const named = [...NETWORKS, ...TEMPO_NETWORKS].map(({ chainId, title }) => `${chainId} ${title}`)
  return `Networks: ${named.join(', ')}.`
}

const ALL_GROUPS: readonly Group[] = [
  'first',
  'facilitators',
  'mpp',
  'receipts',
  'process',
  'stores',
  'observation',
  'refunds',
  'buyer',
]

const PROJECT_ENV = `# Copy to .env with mode 0600 and fill in; every command reads it. An empty value counts as unset.
# For play money on this machine nothing is needed: npx ratecard serve --sandbox

${environment(['first', 'facilitators', 'mpp', 'receipts', 'process', 'stores', 'observation', 'refunds'])}
`

/** The text of a file with the part between its two markers replaced. */
function between(path: string, marks: readonly [string, string], part: string): string {
  const text = readFileSync(new URL(path, ROOT), 'utf8')
  const [begin, end] = marks.map((mark) => text.indexOf(mark))
  if (begin === undefined || end === undefined || begin === -1 || end < begin)
    throw new Error(`${path} lacks ${marks.join(' and ')}`)
  return `${text.slice(0, begin + marks[0].length)}\n\n${part}\n\n${text.slice(end)}`
}

const IN_PAGE = [
  '<!-- Generated from src/settings.ts by `npm run generate`. -->',
  '<!-- End of what is generated. -->',
] as const
const IN_ENV = [
  '# Generated from src/settings.ts by `npm run generate`; edit below.',
  '# End of what is generated.',
] as const

async function formatted(path: string, text: string): Promise<string> {
  const config = await resolveConfig(new URL(path, ROOT))
  return format(text, { ...config, filepath: path })
}

/** The files that are made from the settings, as they should be. */
export async function settingFiles(): Promise<ReadonlyMap<string, string>> {
  const page = (path: string, part: string): Promise<string> => formatted(path, between(path, IN_PAGE, part))
  return new Map([
    ['src/engine/app/ratecard-options.ts', await formatted('src/engine/app/ratecard-options.ts', MODULE)],
    ['docs/embedding.md', await page('docs/embedding.md', OPTIONS_TABLE)],
    ['docs/deployment.md', await page('docs/deployment.md', VARIABLES_TABLE)],
    ['deploy/.env.example', between('deploy/.env.example', IN_ENV, environment(ALL_GROUPS))],
    ['templates/project/env.example', PROJECT_ENV],
  ])
}
