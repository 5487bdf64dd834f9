"""Clients of other makers, each a program of its own, which reads lines of JSON and writes them.

The first line that it reads is {"url", "token", ...}.

Those that listen (`…_client`) read no other, and write: first what they saw on their way through
everything ("seen"); then what they listen to ("listening"); then, whenever they hear of a change,
what they find when they ask anew: "tools", "prompts", "resources" or, of the one that they have
subscribed to, "read".

Those that call (`…_caller`) write the revision they speak and the tools they see ("met"), and, on
session-based revisions, whatever change of a list they are told of ("heard"). Then each
line that they read is a tool to call, {"call", "arguments"}, or a resource to read, {"read"}, or a prompt
to get, {"get", "arguments"}; they write whatever they are asked
meanwhile ("asked"), each time read an answer to that, and write what came of it in the end: "done",
the result with the "progress" and "logs" that were told of; or "raised". With "watch": true they also write each
"progress" as it comes. Those that follow tasks (`…_tasks_caller`) have words of
their own.
"""
