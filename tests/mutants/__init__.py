"""Mutants guard the tests: small mistakes in the product, each of which some test must notice.

`<package>.toml` has those of one package of `mcphost/` or of one module beside the packages. A table is
one mutant, and its name says what is wrong then:

    [claim-taken-over-twice]
    file = 'mcphost/calls/claims.py'    # the file with the mistake
    old = '"calls_claim.epoch = …'      # a part of one line, which occurs once in the file
    new = '"calls_claim.tenant = …'     # what stands there instead
    tests = ['tests/calls/test_claims.py']

`tests` are files or node ids: few, and quick, because each mutant runs all of its own until one fails. A
mutant changes what users, clients or operators rely on: no log text, and nothing that has no effect. One
that survives shows a behaviour that no test guards: write the test.

`make mutants` runs them all, before and after tests are cut. `python -m tests.mutants calls` runs those of a
package, `python -m tests.mutants calls.claim-taken-over-twice` one.
"""
