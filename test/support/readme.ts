import { readFileSync } from 'node:fs'

export interface Block {
  /** Of the section it stands in. */
  readonly section: string
  /** What stands behind the fence: `sh`, `yaml`; empty for what a terminal shows. */
  readonly language: string
  readonly text: string
}

/** Everything between fences in README.md, in its order. */
export function readmeBlocks(): readonly Block[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  return readme.split(/^## /m).flatMap((part) =>
    Array.from(part.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm), ([, language = '', text = '']) => ({
      section: part.slice(0, part.indexOf('\n')),
      language,
      text,
    })),
  )
}
