import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A fenced block of a page. */
export interface Block {
  readonly page: string
  /** Line of the opening fence. */
  readonly line: number
  /** First word behind the fence. */
  readonly language: string
  /** Second word: why commands are not run here. */
  readonly mark: string
  readonly text: string
}

/** Every page of the repository, by its path. */
export const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'src/buyer/README.md',
  ...[...filesIn('docs'), ...filesIn('docs/decisions')].filter((file) => file.endsWith('.md')),
  ...filesIn('examples')
    .map((folder) => `${folder}/README.md`)
    .filter((page) => existsSync(join(ROOT, page))),
]

function filesIn(folder: string): string[] {
  return existsSync(join(ROOT, folder))
    ? readdirSync(join(ROOT, folder)).map((file) => `${folder}/${file}`)
    : []
}

export function textOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

/** All fenced blocks, in order. */
export function blocksOf(page: string): readonly Block[] {
  const text = textOf(page)
  return Array.from(
    text.matchAll(/^```(\w*) ?(\w*)\n([\s\S]*?)^```$/gm),
    ({ index, 1: language = '', 2: mark = '', 3: content = '' }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      language,
      mark,
      text: content,
    }),
  )
}
