import { NONE, pathOf, spellParameter, spellParameters } from './spelling.ts'
import { claimOf, type Claim, type Testimony } from './testimony.ts'

const ENTRY = /^- \[[^\]]*\]\((\S+?)\): (?:\$(\d+\.\d+)|free)\. (.*)$/gm

/** What the guide for language models says: what is sold now, a line each. Lines on tools of MCP servers are left out. */
export function llmsTestimony(document: string, text: string): Testimony {
  const claims = [...text.matchAll(ENTRY)].flatMap(
    ([, url = '', price = 'free', rest = '']): [string, Claim][] => {
      const path = pathOf(url)
      if (!path.startsWith('/paid/')) return []
      return [
        [
          path,
          claimOf(
            ['price', price],
            ['parameters', parametersIn(rest)],
            ['sample', previewIn(rest, path)],
            // What cannot be called now is not in it.
            ['available', 'yes'],
          ),
        ],
      ]
    },
  )
  return { document, covers: 'sold now', claims: new Map(claims) }
}

/** Where a line of the guide ends and its preview begins. */
const PREVIEW = /(?<=[.!?:]) (?:Preview\.|\[Preview\]\((\S+?)\).*)$/

/** A sentence of names, the first of which may have values behind them: a summary may begin a sentence with Takes too. */
const TAKES = /(?<=[.!?:]) Takes ((?:\w+\*?, )*\w+(?:\*?|=.*))\.$/

function parametersIn(rest: string): string {
  const [, parameters] = TAKES.exec(rest.replace(PREVIEW, '')) ?? []
  if (parameters === undefined) return NONE
  // A default of nothing but white space is none.
  return parameters.replace(/\s+/g, ' ').replace(/= (?=, |$)/g, '')
}

function previewIn(rest: string, path: string): string {
  const preview = PREVIEW.exec(rest)
  if (preview === null) return NONE
  return preview[1] === undefined ? path.replace(/^\/paid\//, '/sample/') : pathOf(preview[1])
}

/** What the long guide says, a chapter each. */
export function llmsFullTestimony(document: string, text: string): Testimony {
  const claims = chaptersOf(text).flatMap((chapter): [string, Claim][] => {
    const [, path, price = 'free'] = /^GET (\S+) \((?:\$(\d+\.\d+)|free)\)$/m.exec(chapter) ?? []
    const sample = /^Free preview: (\S+)$/m.exec(chapter)?.[1] ?? NONE
    return path === undefined
      ? []
      : [[path, claimOf(['price', price], ['sample', sample], ['available', 'yes'])]]
  })
  return { document, covers: 'sold now', claims: new Map(claims) }
}

/** A value is a span of code: as many backticks before it as after it, and fewer in it. */
const ROW = /^\| `([^`]+)` \| [^|]* \| (yes|no) \| (?:(`+)(?!`)(.*?)(?<!`)\3(?!`) )? *\|/gm

/** What the documentation says in Markdown. */
export function manualTestimony(document: string, text: string): Testimony {
  const claims = chaptersOf(text).flatMap((chapter): [string, Claim][] => {
    const [, path, price] = /^GET `(\S+)`: (?:(\d+\.\d+) USD|free)$/m.exec(chapter) ?? []
    const [own = '', preview] = chapter.split(/^Free preview (?=`)/m)
    const parameters = [...own.matchAll(ROW)].map(([, name = '', required, , value]) =>
      spellParameter(name, required === 'yes', value === undefined ? undefined : unspan(value)),
    )
    const sample = /^`(\S+)`/.exec(preview ?? '')?.[1] ?? NONE
    if (path === undefined) return []
    return [
      [
        path,
        claimOf(['price', price ?? 'free'], ['parameters', spellParameters(parameters)], ['sample', sample]),
      ],
    ]
  })
  return { document, covers: 'sold', claims: new Map(claims) }
}

/** What stands in a span of code, in the cell of a table: room beside backticks is not part of it. */
function unspan(span: string): string {
  const line = /^ (`.*|.*`) $/.exec(span)?.[1] ?? span
  return line.replaceAll('\\|', '|')
}

function chaptersOf(text: string): string[] {
  return text.split(/^### /m)
}

const ARTICLE =
  /<a href="#[^"]*">GET ([^<\s]+)<\/a> <span class="price">(?:(\d+\.\d+) USD|free)<\/span>(.*?)<\/article>/gs

/** What the documentation says as a page. */
export function pageTestimony(document: string, html: string): Testimony {
  const claims = [...html.matchAll(ARTICLE)].map(
    ([, path = '', price = 'free', rest = '']): [string, Claim] => {
      const sample = /Free preview: <a [^>]*><code>GET ([^<]+)<\/code>/.exec(rest)?.[1] ?? NONE
      return [path, claimOf(['price', price], ['sample', sample])]
    },
  )
  return { document, covers: 'sold', claims: new Map(claims) }
}
