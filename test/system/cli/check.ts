import t from 'tap'
import { runLine } from '../../support/run-command.ts'
import { runProgram } from '../../support/server.ts'
import { writeShop } from '../../support/catalogs.ts'

t.test('accepts the shipped catalog', async (t) => {
  const { code, stdout, stderr } = await runProgram(['check'])
  t.equal(code, 0)
  t.match(stdout, /^catalog\.yaml: \d+ routes, \d+ paid, revision \S+\n$/m)
  t.equal(stderr, '')
})

t.test('reports every error at its position, with a suggestion', async (t) => {
  const shop = writeShop(
    t,
    `  /paid/greet: { price: 0.0000001, summary: X }
  /paid/meet: { price: 1, sumary: X }
  /paid/x/: { price: 1, summary: X, handler: greet }
  /paid/y:
    price: 1
    summary: X
    handlr: greet
`,
  )
  const { code, out } = await runLine(['check', shop.catalog])
  t.equal(code, 1)
  t.match(out, /catalog\.yaml:6:25 price_too_precise/)
  t.match(out, /catalog\.yaml:7:\d+ \w+ .*did you mean "summary"/)
  t.match(out, /catalog\.yaml:8:3 route_path_invalid/)
  t.match(out, /catalog\.yaml:12:5 \w+ .*did you mean "handler"/)
  t.match(out, /> 12 \|     handlr: greet/, 'the line itself is shown')
  t.match(out, /catalog\.yaml: \d+ issues$/)
})

t.test('reports a missing file with its path', async (t) => {
  const { code, out } = await runLine(['check', 'absent.yaml'])
  t.equal(code, 1)
  t.match(out, 'absent.yaml cannot be read: no such file')
  t.match(out, '1 issue')
})

t.test('reads the file that CATALOG names when the command line names none', async (t) => {
  const shop = writeShop(t, '  /paid/greet: { price: 1, summary: X }\n')
  const { code, out } = await runLine(['check'], {
    variables: { CATALOG: shop.catalog },
    handlers: ['greet'],
  })
  t.equal(code, 0)
  t.match(out, '1 route, 1 paid')
})

t.test('--json prints the revision and every issue with its position', async (t) => {
  const sound = writeShop(t, '  /paid/greet: { price: 2, summary: X }\n')
  const passed = await runLine(['check', sound.catalog, '--json'], { handlers: ['greet'] })
  t.equal(passed.code, 0)
  t.match(JSON.parse(passed.out), {
    file: sound.catalog,
    revision: /^[\w-]{12}$/,
    issues: [
      { severity: 'warning', code: 'price_over_client_cap', position: { line: 6, column: 25, width: 1 } },
    ],
  })
  const broken = writeShop(t, '  /paid/greet: { price: 0.0000001, sumary: X }\n')
  const refused = await runLine(['check', broken.catalog, '--json'], { handlers: ['greet'] })
  t.equal(refused.code, 1)
  t.equal(refused.err, '')
  const report: unknown = JSON.parse(refused.out)
  t.match(report, {
    file: broken.catalog,
    revision: null,
    issues: [
      { severity: 'error', code: 'price_too_precise', position: { line: 6 } },
      { severity: 'error', code: 'key_unknown', message: /did you mean "summary"/, position: { line: 6 } },
    ],
  })
})

t.test('reports the same with the validator that the build generates', async (t) => {
  const shop = writeShop(
    t,
    `  /paid/greet: { price: 1, summary: '', handler: [greet] }
  /paid/meet: { price: 1, sumary: X, cache: soon }
  /paid/x/: { price: 1, summary: X, handler: greet, method: FETCH }
  /paid/y: { price: 1, summary: ${'é'.repeat(300)}, use_when: 12, parameters: { 9a: { type: text } } }
  /paid/z: 1
`,
  )
  const generated = await runProgram(['check', shop.catalog, '--json'])
  const compiled = await runLine(['check', shop.catalog, '--json'])
  t.equal(generated.code, 1)
  t.match(generated.stdout, 'characters, not 300')
  t.strictSame(JSON.parse(generated.stdout), JSON.parse(compiled.out))
})
