import { clean, columns } from '../terminal-text.ts'
import type { Change, Difference } from './difference.ts'

export interface Title {
  readonly file: string
  readonly against: string
  /** Of the largest challenge; undefined: there is none. */
  readonly header: string | undefined
}

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

export function asText({ file, against, header }: Title, { changes, lines, alarms }: Difference): string {
  const table = changes.flatMap(({ kind, name, price, header: bytes }) => [[SIGNS[kind], name, price, bytes]])
  const rows = table.length === 0 ? [] : columns(table).split('\n')
  const detailed = rows.flatMap((row, place) => [
    row,
    ...(changes[place]?.parameters ?? []).map((line) => `     ${line}`),
  ])
  return [
    `${file} against ${against}`,
    ...(changes.length + lines.length === 0 ? ['no difference'] : []),
    ...detailed,
    ...lines,
    ...(header === undefined ? [] : [`largest header: ${header}`]),
    ...alarms.map((alarm) => `! ${alarm}`),
  ]
    .map(clean)
    .join('\n')
}

/** For a pull request. */
export function asMarkdown({ file, against, header }: Title, { changes, lines, alarms }: Difference): string {
  const rows = changes.map(({ kind, name, price, parameters, header: bytes }) =>
    [SIGNS[kind], code(name), price, parameters.map(code).join('<br>'), bytes].map(cell).join(' | '),
  )
  return [
    `### ${code(file)} against ${code(against)}`,
    '',
    ...(changes.length + lines.length === 0 ? ['No difference.'] : []),
    ...(rows.length === 0
      ? []
      : [
          '| | Route | Price | Parameters | Header |',
          '|---|---|---|---|---|',
          ...rows.map((row) => `| ${row} |`),
          '',
        ]),
    ...lines.map((line) => `- ${cell(clean(line))}`),
    ...(header === undefined ? [] : [`- largest header: ${cell(clean(header))}`]),
    ...(alarms.length === 0 ? [] : ['', ...alarms.map((alarm) => `- ⚠️ **${cell(clean(alarm))}**`)]),
  ].join('\n')
}

/** Backticks of a stranger must not end it. */
function code(text: string): string {
  return `\`${clean(text).replaceAll('`', "'")}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
