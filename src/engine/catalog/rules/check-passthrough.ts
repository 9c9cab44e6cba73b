import type { CheckContext } from '../check-context.ts'
import { error, type Issue } from '../issue.ts'

/** Checks that the site behind the catalog is named by its origin: every request brings its own path. */
export function* checkPassthrough({ declared: { passthrough }, document }: CheckContext): Generator<Issue> {
  if (passthrough === undefined) return
  const isText = typeof passthrough === 'string'
  const [text, at] = isText ? [passthrough, ['passthrough']] : [passthrough.url, ['passthrough', 'url']]
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined)
    yield error(
      'upstream_invalid',
      document.at(at),
      'must be a whole address, such as https://internal.example',
    )
  else if (url.username !== '' || url.password !== '')
    yield error(
      'upstream_invalid',
      document.at(at),
      'is passed on without a user and a password: remove them',
    )
  else if (url.href !== `${url.origin}/`)
    yield error('upstream_invalid', document.at(at), `every request brings its own path: write ${url.origin}`)
}
