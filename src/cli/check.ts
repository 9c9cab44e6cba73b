import { loadServed } from '../engine/app/catalog-thread.ts'
import { CatalogError, formatIssue, type Issue } from '../engine/catalog/issue.ts'
import type { Call } from './command.ts'
import { handlersFor } from './load-handlers.ts'
import { baseUrlOf } from './payment-config.ts'
import { type Paint, painterFor } from './terminal-text.ts'
import { countOf } from '../engine/base/words.ts'

export async function check(call: Call): Promise<number> {
  const { positionals, terminal, env, flags } = call
  const file = positionals[0] ?? env.catalog
  const paint = painterFor(call)
  const report = (issues: readonly Issue[], revision: string | null): void =>
    terminal.out(JSON.stringify({ file, revision, issues }, undefined, 2))
  try {
    const handlers = await handlersFor(call, file)
    const { catalog, warnings, text } = loadServed(file, { handlers: Object.keys(handlers) }, baseUrlOf(env))
    if (flags.given('json')) {
      report(warnings, catalog.revision)
      return 0
    }
    for (const issue of warnings) terminal.out(`${paintIssues(formatIssue(issue, file, text), paint)}\n`)
    const paid = catalog.routes.filter(({ kind }) => kind === 'paid').length
    terminal.out(
      `${file}: ${countOf(catalog.routes.length, 'route')}, ${paid} paid, revision ${catalog.revision}`,
    )
    return 0
  } catch (fault) {
    if (!(fault instanceof CatalogError)) throw fault
    if (flags.given('json')) report(fault.issues, null)
    else {
      terminal.out(paintIssues(fault.message, paint))
      terminal.out(`\n${file}: ${countOf(fault.issues.length, 'issue')}`)
    }
    return 1
  }
}

/** The severity follows the position in the first line of an issue. */
function paintIssues(text: string, paint: Paint): string {
  return text.replaceAll(/(?<=^\S+:\d+:\d+ )(?:error|warning)\b/gm, (severity) =>
    paint(severity === 'error' ? 'red' : 'yellow', severity),
  )
}
