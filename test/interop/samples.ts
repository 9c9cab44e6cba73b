import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import t from 'tap'
import { at, items } from '../support/documents.ts'
import { exampleCall, objectIn, openSandbox, samples } from './support/shipped-service.ts'

const service = await openSandbox(t)
const document = await service.readJson('/openapi.json')

/** The schema of an answer, in a form that finds the components it refers to. */
function answerSchema(path: string): object {
  return {
    $id: `https://schemas.example/${path.replaceAll('/', '-')}`,
    components: at(document, 'components'),
    allOf: [at(document, 'paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema')],
  }
}

t.test('gives a reader of the document the promised free preview', async (t) => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  for (const { path, parameters } of samples) {
    const answer = await service.ask(exampleCall(path))
    t.equal(answer.status, 200, path)
    t.match(answer.headers.get('content-type'), /^application\/json/)
    const body = objectIn(await answer.text())
    const fits = ajv.compile(answerSchema(path))
    t.ok(fits(body), `${path}: ${ajv.errorsText(fits.errors)}`)
    const required = parameters.filter((parameter) => parameter.required)
    if (required.length === 0) continue
    const refused = await service.ask(path)
    t.equal(refused.status, 422, path)
    const locations = items(at(objectIn(await refused.text()), 'detail')).map((each) => at(each, 'loc'))
    t.strictSame(
      locations,
      required.map(({ name }) => ['query', name]),
      path,
    )
  }
})

t.test('ignores a payment that comes with a free preview', async (t) => {
  const headers = { 'PAYMENT-SIGNATURE': 'nonsense', Authorization: 'Payment nonsense' }
  for (const { path } of samples)
    t.equal((await service.ask(exampleCall(path), { headers })).status, 200, path)
})
